/** Moves the focus to the first invalid field of a form, after its errors are shown. */
export function focusInvalid(form: Element | null | undefined): void {
  setTimeout(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), 0)
}
