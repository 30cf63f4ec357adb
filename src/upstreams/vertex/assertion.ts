import { sign } from 'node:crypto'
import type { ServiceAccount } from '../../domain/service-account.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** Seconds that an assertion is valid for: the most that is allowed. */
const VALID_S = 3600
/** Seconds that the issue time is set back, for clocks that are not alike. */
const SKEW_S = 30

/** Signs the assertion that is exchanged for an access token (RFC 7523). */
export function assertionOf(account: ServiceAccount, now: Date): string {
  const issued = Math.floor(now.getTime() / 1000) - SKEW_S
  const header = {
    alg: 'RS256',
    typ: 'JWT',
    ...(account.privateKeyId !== undefined && { kid: account.privateKeyId }),
  }
  const claims = {
    iss: account.email,
    scope: SCOPE,
    aud: account.tokenUri,
    iat: issued,
    exp: issued + VALID_S,
  }
  const unsigned = `${encoded(header)}.${encoded(claims)}`
  return `${unsigned}.${sign('sha256', Buffer.from(unsigned), account.privateKey).toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
