import type { MouseEvent } from 'react'

/**
 * Keeps the focus in its field while a button is pressed. A field that is validated when it loses the focus
 * would show its error, move the button away from the pointer, and so prevent the click.
 */
export function keepFocus(event: MouseEvent): void {
  event.preventDefault()
}
