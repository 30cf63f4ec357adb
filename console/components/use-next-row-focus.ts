import { type FocusEvent, type RefObject, useEffect, useLayoutEffect, useRef } from 'react'

/** Milliseconds between two checks whether a dialog is still open, and the maximum number of checks. */
const STEP_MS = 50
const MAX_STEPS = 60
const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled)'

/** The row that has, or had, the focus. */
interface Focused {
  readonly key: string
  readonly place: number
}

/**
 * Moves the focus to the next row when the row with the focus is deleted, because the browser would otherwise
 * lose the focus. Returns a listener for focus events in the table's body.
 */
export function useNextRowFocus(
  body: RefObject<HTMLTableSectionElement | null>,
  keys: readonly string[],
): (event: FocusEvent) => void {
  const focused = useRef<Focused>(undefined)
  const stopWaiting = useRef<() => void>(undefined)
  useEffect(() => () => stopWaiting.current?.(), [])
  useLayoutEffect(() => {
    const last = focused.current
    if (!last || keys.includes(last.key)) return
    focused.current = undefined
    const place = Math.min(last.place, keys.length - 1)
    stopWaiting.current = whenFocusIsNowhere(() => focusRow(body.current, place))
  })
  return ({ target }) => {
    const row = target.closest('tr')
    const place = row ? rowsOf(body.current).indexOf(row) : -1
    const key = keys[place]
    if (key !== undefined) focused.current = { key, place }
  }
}

/**
 * Calls `act` as soon as no element has the focus; waits only while the focus is in a dialog. Returns a
 * function that stops waiting.
 */
function whenFocusIsNowhere(act: () => void): () => void {
  let steps = 0
  const timer = setInterval(() => {
    const active = document.activeElement
    const isNowhere = active === null || active === document.body
    if (isNowhere) act()
    steps += 1
    if (isNowhere || steps === MAX_STEPS || !active.closest('[role="dialog"]')) clearInterval(timer)
  }, STEP_MS)
  return () => clearInterval(timer)
}

function focusRow(body: HTMLTableSectionElement | null, place: number): void {
  rowsOf(body)[place]?.querySelector<HTMLElement>(FOCUSABLE)?.focus()
}

/** The rows of the table, without the detail lines below them. */
function rowsOf(body: HTMLTableSectionElement | null): HTMLTableRowElement[] {
  return [...(body?.rows ?? [])].filter((row) => row.dataset['detail'] === undefined)
}
