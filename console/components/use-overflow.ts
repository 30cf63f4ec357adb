import { type RefObject, useEffect, useRef } from 'react'

/** The elements of a region whose content may be wider than itself. */
export interface Overflow {
  /** The region; its first child is the content. */
  readonly region: RefObject<HTMLDivElement | null>
  /**
   * A scroll bar for the region with one child, which stays visible when the region's end is outside the
   * window.
   */
  readonly bar: RefObject<HTMLDivElement | null>
}

/**
 * Marks a region with `data-wide` while its content is wider than itself. Only then does it scroll, and only
 * otherwise can a heading in it stay at the top of the window.
 */
export function useOverflow(): Overflow {
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
      // Equal positions send no further event, so that the two do not trigger each other forever.
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
