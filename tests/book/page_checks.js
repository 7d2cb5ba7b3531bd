// Run in a built page by test_pages.py: what is wrong with the page, under one name for each kind of fault.
(() => {
  const all = selector => [...document.querySelectorAll(selector)]
  const brief = element => element.outerHTML.slice(0, 120)
  const spoken = e => (e.getAttribute('alt') ?? e.getAttribute('aria-label') ?? '').trim() !== ''

  function rawMathematics() {
    const untouched = all('span.math, div.math').filter(e => !e.querySelector('mjx-container')).map(brief)
    const failed = all('mjx-merror').map(e => 'error: ' + e.textContent)
    const walker = document.createTreeWalker(document.querySelector('article') ?? document.body, NodeFilter.SHOW_TEXT)
    const raw = []
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode
      const isCode = parentElement.closest('pre, code, script, style, mjx-container')
      if (!isCode && /\\[(\[]|\$\$|\\(frac|text|sqrt)\b/.test(data)) raw.push(data.trim().slice(0, 80))
    }
    return [...untouched, ...failed, ...raw]
  }

  function doubledIds() {
    const ids = all('[id]').map(e => e.id)
    return [...new Set(ids.filter((id, i) => ids.indexOf(id) !== i))]
  }

  // The logo may be silent, since the book's title stands beside it; in the text every picture speaks.
  function silentPictures() {
    const images = all('img').filter(e => !e.hasAttribute('alt') || (e.closest('article') && !spoken(e)))
    const drawings = all('article :is(svg, canvas)')
      .filter(e => !e.closest('[aria-hidden=true], button') && !(e.getAttribute('role') === 'img' && spoken(e)))
    return [...images, ...drawings].map(brief)
  }

  function headingLeaps() {
    const headings = all('main :is(h1, h2, h3, h4, h5, h6)').filter(e => e.checkVisibility())
    const levels = headings.map(e => +e.tagName[1])
    const leaps = headings.filter((e, i) => levels[i] > (i ? levels[i - 1] : 0) + 1).map(e => e.textContent)
    const titles = levels.filter(level => level === 1).length
    return titles === 1 ? leaps : [`${titles} titles of level 1`, ...leaps]
  }

  function sideways() {
    const width = document.scrollingElement.scrollWidth
    if (width <= innerWidth) return []
    const scrolls = e => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)
    const contained = e => e !== document.body && (scrolls(e) || contained(e.parentElement))
    const culprits = all('main *').filter(e =>
      e.getBoundingClientRect().right > innerWidth + 1 && !contained(e.parentElement) && !e.closest('.bd-sidebar-secondary'))
    return [`${width} px`, ...culprits.slice(0, 5).map(brief)]
  }

  return {
    rawMathematics: rawMathematics(),
    doubledIds: doubledIds(),
    silentPictures: silentPictures(),
    headingLeaps: headingLeaps(),
    sideways: sideways(),
  }
})()
