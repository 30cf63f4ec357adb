import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Distances from the end, in pixels, that count as being there. */
const NEAR = 24

/** A list that stays at its end while it grows, unless its reader has scrolled up. */
export interface ScrollFollowing {
  readonly list: RefObject<HTMLDivElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  /** Whether the reader is above the end. */
  readonly isAway: boolean
  readonly onScroll: () => void
  /** Goes to the end and follows it again. */
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
    // What was added since the last scrolling is not the reader's doing: only going up is.
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
