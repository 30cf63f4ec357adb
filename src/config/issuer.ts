import { namesMetadataAddress } from '../domain/metadata-address.ts'
import { Refusal } from './fields.ts'

/** An issuer identifier, unchanged: it is compared as text (OpenID Connect Core, 2). */
export function readIssuer(given: string): string | Refusal | undefined {
  const url = URL.parse(given)
  if (!url || !/^https?:\/\//i.test(given) || /[\s\\]/.test(given)) return undefined
  if (url.username || url.password) return new Refusal('a URL without a user or password')
  if (given.includes('?') || given.includes('#')) return new Refusal('a URL without ? or #')
  if (given.includes('/.well-known/'))
    return new Refusal('the issuer alone: /.well-known/openid-configuration is added')
  return namesMetadataAddress(given)
    ? new Refusal("another address than that of a cloud's metadata service")
    : given
}
