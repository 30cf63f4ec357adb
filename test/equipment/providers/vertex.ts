import { generateKeyPairSync, verify } from 'node:crypto'
import { type Double, type DoubleAnswer, type ReceivedByDouble, startDouble } from './double.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const EMAIL = 'gateway@my-project.iam.gserviceaccount.com'
const KEY_ID = 'key-1'
/**
 * Versions in the body: the service's own, and that of the header, which Anthropic's client moves into the
 * body.
 */
const VERSION = /^(?:vertex-2023-10-16|\d{4}-\d\d-\d\d)$/
const MAX_SKEW_S = 300

/** A double of a token endpoint and of the model servers behind it. */
export interface VertexDouble extends Double {
  /** The JSON key of a service account whose tokens come from this double. */
  readonly serviceAccount: string
  /** The key of another account, which the token endpoint does not know. */
  readonly unknownAccount: string
  /** The tokens issued so far. */
  readonly issued: string[]
  /** Revokes all tokens issued so far. */
  revoke(): void
  /** Makes the token endpoint fail with this status; with 0 it works. */
  failTokens(status: number): void
}

/** Starts the double; `answer` responds to requests with a valid token. */
export async function startVertex(
  answer: (request: ReceivedByDouble) => DoubleAnswer | Promise<DoubleAnswer>,
  expiresInS = 3599,
): Promise<VertexDouble> {
  const issued: string[] = []
  const valid = new Set<string>()
  let tokenStatus = 0
  const tokenAnswer = (form: URLSearchParams): DoubleAnswer => {
    if (tokenStatus !== 0)
      return {
        status: tokenStatus,
        body: '{"error":"invalid_grant","error_description":"Invalid JWT Signature."}',
      }
    const wrong = assertionError(form, `${double.url}/token`)
    if (wrong !== undefined)
      return { status: 400, body: JSON.stringify({ error: 'invalid_grant', error_description: wrong }) }
    const token = `ya29.token-${issued.length + 1}`
    issued.push(token)
    valid.add(token)
    return { body: JSON.stringify({ access_token: token, expires_in: expiresInS, token_type: 'Bearer' }) }
  }
  const double = await startDouble((request) => {
    if (request.path === '/token') return tokenAnswer(new URLSearchParams(request.body.toString()))
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined || !valid.has(token)) {
      const error = {
        code: 401,
        message: 'Request had invalid authentication credentials.',
        status: 'UNAUTHENTICATED',
      }
      return { status: 401, body: JSON.stringify({ error }) }
    }
    const wrong = rawPredictError(request)
    return wrong === undefined ? answer(request) : { status: 400, body: wrongRequest(wrong) }
  })
  const accountOf = (email: string): string =>
    JSON.stringify({
      type: 'service_account',
      project_id: 'my-project',
      private_key_id: KEY_ID,
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      client_email: email,
      token_uri: `${double.url}/token`,
    })
  return {
    ...double,
    serviceAccount: accountOf(EMAIL),
    unknownAccount: accountOf('nobody@my-project.iam.gserviceaccount.com'),
    issued,
    revoke: () => valid.clear(),
    failTokens: (status) => void (tokenStatus = status),
  }
}

/** Why a request for Claude is refused; undefined if it is accepted or is for another model. */
function rawPredictError({ path, headers, body }: ReceivedByDouble): string | undefined {
  if (!/\/publishers\/anthropic\/.*awPredict$/.test(path)) return undefined
  const { anthropic_version: version, model, stream } = JSON.parse(body.toString())
  if (headers['x-api-key'] !== undefined) return 'x-api-key: not permitted'
  if (!VERSION.test(version ?? '')) return 'anthropic_version: Field required'
  if (model !== undefined && !path.includes('/count-tokens:')) return 'model: Extra inputs are not permitted'
  return path.endsWith(':streamRawPredict') === (stream === true)
    ? undefined
    : 'stream: differs from the method'
}

function wrongRequest(message: string): string {
  return JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } })
}

function assertionError(form: URLSearchParams, audience: string): string | undefined {
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'wrong grant_type'
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const isSigned = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    publicKey,
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) return 'Invalid JWT Signature.'
  const { alg, kid } = parsed(header)
  const { iss, scope, aud, iat, exp } = parsed(claims)
  const nowS = Date.now() / 1000
  // Google's own library does not name a key, and states the only address that it knows.
  const isMeant = aud === audience || aud === 'https://oauth2.googleapis.com/token'
  const isOfKey = kid === undefined || kid === KEY_ID
  if (alg !== 'RS256' || !isOfKey || iss !== EMAIL || !isMeant) return 'wrong claims'
  if (scope !== 'https://www.googleapis.com/auth/cloud-platform') return 'wrong scope'
  const isTimely = Number(exp) - Number(iat) <= 3600 && Math.abs(nowS - Number(iat)) < MAX_SKEW_S
  return isTimely && Number(exp) > nowS ? undefined : 'Invalid JWT: the token must be short-lived'
}

function parsed(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
