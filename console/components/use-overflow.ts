import { type RefObject, useEffect, useRef } from 'react'

/** References to a region that may scroll horizontally, and to its scroll bar. */
export interface OverflowRefs {
  /** The region; its first child is the content. */
  readonly region: RefObject<HTMLDivElement | null>
  /**
   * An extra scroll bar for the region. It stays visible when the lower end of the region is outside the
   * window.
   */
  readonly bar: RefObject<HTMLDivElement | null>
}

/**
 * Marks a region with `data-wide` while its content is wider than the region. Only a marked region scrolls,
 * because a heading inside a scrolling region cannot stay at the top of the window.
 */
export function useHorizontalOverflow(): OverflowRefs {
  const region = useRef<HTMLDivElement>(null)
  const bar = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const [one, other] = [region.current, bar.current]
    const content = one?.firstElementChild
    const length = other?.firstElementChild
    if (!one || !other || !content || !(length instanceof HTMLElement)) return
    const look = (): void => {
      const width = content.scrollWidth
      one.toggleAttribute('data-wide', width > one.clientWidth)
      length.style.width = `${width}px`
    }
    const follow = ({ target }: Event): void => {
      const [from, to] = target === one ? [one, other] : [other, one]
      // Setting an equal position sends no event, so the two scroll bars do not trigger each other forever.
      if (to.scrollLeft !== from.scrollLeft) to.scrollLeft = from.scrollLeft
    }
    const watching = new ResizeObserver(look)
    watching.observe(one)
    watching.observe(content)
    one.addEventListener('scroll', follow)
    other.addEventListener('scroll', follow)
    return () => {
      watching.disconnect()
      one.removeEventListener('scroll', follow)
      other.removeEventListener('scroll', follow)
    }
  }, [])
  return { region, bar }
}
