import type { MouseEvent } from 'react'

/**
 * Keeps the focus in its field while a button is pressed: a field that is checked when it is left would show
 * its error, move the button away from the pointer, and so swallow the click.
 */
export function keepFocus(event: MouseEvent): void {
  event.preventDefault()
}
