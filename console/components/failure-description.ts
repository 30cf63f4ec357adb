const STATUS = /^status (\d{3})$/

/** Describes the cause of a failed attempt, which the gateway reports as a short name or as an error code of the system. */
export function failureDescription(
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
