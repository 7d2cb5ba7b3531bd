"""Puts a link to the notebook itself under the title of each exercise page."""


def add_download_link(app, pagename, templatename, context, doctree):
    if pagename.startswith("exercises/") and context.get("sourcename"):
        source = context["pathto"]("_sources/" + context["sourcename"], 1)
        link = f'<a href="{source}" download>Download this notebook</a> and open it in JupyterLab.'
        context["body"] = context["body"].replace("</h1>", f'</h1>\n<p class="notebook-download">{link}</p>', 1)


def setup(app):
    app.connect("html-page-context", add_download_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
