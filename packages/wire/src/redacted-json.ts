/** Redacts the texts in a JSON value. Returns undefined if none of them changes. */
export function redactedJson(value: unknown, redact: (text: string) => string): Buffer | undefined {
  let isRedacted = false
  const redacted = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner !== 'string') return inner
    const text = redact(inner)
    isRedacted ||= text !== inner
    return text
  })
  return isRedacted ? Buffer.from(redacted) : undefined
}
