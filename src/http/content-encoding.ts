/** Supported encodings of responses, in order of preference. */
const OFFERED = ['br', 'gzip'] as const

/** Encoding of a response as sent; `identity` is the response unchanged. */
export type Encoding = (typeof OFFERED)[number] | 'identity'

/**
 * Chooses an encoding by the header `Accept-Encoding` (RFC 9110, 12.5.3). A weight of 0 forbids an encoding.
 */
export function chooseEncoding(accepted: string | undefined): Encoding {
  const weights = new Map(
    (accepted ?? '').split(',').map((part) => {
      const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      const weight = parameters.find((text) => text.startsWith('q='))
      return [name, weight === undefined ? 1 : Number(weight.slice(2))] as const
    }),
  )
  const isAccepted = (name: string): boolean => (weights.get(name) ?? weights.get('*') ?? 0) > 0
  return OFFERED.find(isAccepted) ?? 'identity'
}
