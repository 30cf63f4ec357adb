import { dictionarySchema, type Field, secretSchema } from './fields.ts'

const headerValue = secretSchema('a header value: printable characters, no line breaks', (given) =>
  /^[\t -~]*$/.test(given) ? given.trim() : undefined,
)

/** Headers that the gateway sets itself, so that an operator may not set them. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers by name that the gateway sends to a service. `isOwn`: further headers that the gateway sets itself. */
export function headersSchema(
  isOwn: (name: string) => boolean = () => false,
): Field<Readonly<Record<string, string>>> {
  return dictionarySchema(headerValue, 'a mapping of headers')
    .superRefine((given, ctx) => {
      for (const header of given.keys()) {
        const isName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header)
        if (isName && !OWN_HEADERS.has(header.toLowerCase()) && !isOwn(header)) continue
        const expected = isName ? 'another header, the gateway sets this one itself' : 'the name of a header'
        ctx.addIssue({ code: 'custom', path: [header], message: `expected ${expected}` })
      }
    })
    .transform((given) => Object.fromEntries(given))
}
