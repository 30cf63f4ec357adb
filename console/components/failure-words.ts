const STATUS = /^status (\d{3})$/

/** Words for the cause of a failed attempt, of which the gateway has a short name or a code of the system. */
export function failureWords(
  cause: string,
  {
    ofCause,
    status,
  }: { readonly ofCause: Readonly<Record<string, string>>; readonly status: (status: string) => string },
): string {
  const [, answered] = STATUS.exec(cause) ?? []
  if (answered !== undefined) return status(answered)
  return Object.hasOwn(ofCause, cause) ? (ofCause[cause] ?? cause) : cause
}
