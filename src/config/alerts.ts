import { ALERT_TYPES, type AlertTarget } from '../domain/alert.ts'
import { namesMetadataAddress } from '../domain/metadata-address.ts'
import { type Field, list, oneOf, secret, section } from './fields.ts'

/** Length of a signing key in bytes, by Standard Webhooks. */
const MIN_KEY_BYTES = 24
const MAX_KEY_BYTES = 64

// Receivers put passwords into their URLs, so that no message repeats one.
const url = secret(
  "an http:// or https:// URL without a user and password, and not of a cloud's metadata service",
  (given) => {
    const parsed = /^https?:\/\//i.test(given) && !/[\s\\]/.test(given) ? URL.parse(given) : null
    if (!parsed || parsed.username !== '' || parsed.password !== '') return undefined
    return namesMetadataAddress(given) ? undefined : given
  },
)

const signingSecret = secret(
  'whsec_ and 24 to 64 bytes in base64, as echo "whsec_$(openssl rand -base64 32)" makes them',
  (given) => {
    const base64 = given.replace(/^whsec_/, '')
    const bytes = Buffer.from(base64, 'base64')
    const isKey = bytes.length >= MIN_KEY_BYTES && bytes.length <= MAX_KEY_BYTES
    return isKey && bytes.toString('base64') === base64 ? `whsec_${base64}` : undefined
  },
)

const target: Field<AlertTarget> = section({
  url,
  secret: signingSecret,
  events: list(oneOf(ALERT_TYPES), 'a list of at least one event', 1),
}).transform((given): AlertTarget => ({ url: given.url, secret: given.secret, types: given.events }))

/** `docs/configuration.md: Alerts`. */
export const alerts: Field<readonly AlertTarget[]> = list(target, 'a list of receivers')
