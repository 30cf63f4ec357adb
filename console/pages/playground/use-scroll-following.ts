import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Maximum distance from the end, in pixels, at which the list counts as scrolled to its end. */
const NEAR = 24

/** A list that stays scrolled to its end while it grows, unless the reader has scrolled up. */
export interface ScrollFollowing {
  readonly list: RefObject<HTMLDivElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  /** Whether the reader has scrolled up from the end. */
  readonly isAway: boolean
  readonly onScroll: () => void
  /** Scrolls to the end and keeps following it. */
  readonly follow: () => void
}

/** Keeps the end of a list in view. */
export function useScrollFollowing(): ScrollFollowing {
  const list = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const lastTop = useRef(0)
  const isFollowing = useRef(true)
  const [isAway, setIsAway] = useState(false)
  const settle = useCallback((follows: boolean): void => {
    isFollowing.current = follows
    setIsAway(!follows)
  }, [])
  const toEnd = useCallback((): void => {
    if (list.current && isFollowing.current) list.current.scrollTop = list.current.scrollHeight
  }, [])
  useEffect(() => {
    const observer = new ResizeObserver(toEnd)
    for (const { current } of [list, content]) if (current) observer.observe(current)
    return () => observer.disconnect()
  }, [toEnd])
  const onScroll = useCallback((): void => {
    if (!list.current) return
    const { scrollTop, scrollHeight, clientHeight } = list.current
    // Growth of the list also increases the distance from the end, so only scrolling up stops the following.
    if (scrollHeight - clientHeight - scrollTop <= NEAR) settle(true)
    else if (scrollTop < lastTop.current) settle(false)
    lastTop.current = scrollTop
  }, [settle])
  const follow = useCallback((): void => {
    settle(true)
    toEnd()
  }, [settle, toEnd])
  return { list, content, isAway, onScroll, follow }
}
