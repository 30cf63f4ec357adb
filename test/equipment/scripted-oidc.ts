import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The claims of an id_token; undefined ones are omitted. */
type Claims = Readonly<Record<string, unknown>>

/** An identity provider controlled by a test, which can send anything. */
export interface ScriptedProvider extends AsyncDisposable {
  readonly issuer: string
  /** The paths of the requests so far, in order. */
  readonly requests: string[]
  /** The forms that the token endpoint received. */
  readonly tokenForms: URLSearchParams[]
  /** Claims about the person who signs in next. */
  person: Claims
  /** Replaces claims of the id_token, such as `aud`. */
  forged: Claims
  /** Builds the id_token, in place of a signed one. */
  idToken: ((claims: Claims) => string) | undefined
  /** Replaces members of the metadata. */
  metadata: Claims
  /** Replaces the response for a path. */
  readonly overrides: Map<string, (response: ServerResponse) => void>
  /**
   * Signs with a new key from now on, and publishes only that key; returns a function that signs with the old
   * one.
   */
  rotate(): (claims: Claims) => string
  /** The current public key. */
  publicKey(): KeyObject
  /** Signs an id_token with the current key. */
  readonly signed: (claims: Claims) => string
  /**
   * Authorizes the sign-in at the address that the gateway redirected a browser to; returns the address of
   * its callback.
   */
  authorize(location: string): string
  /** Refuses connections, until `resume`. */
  close(): Promise<void>
  resume(): Promise<void>
}

/** A sign-in that was authorized, by its code. */
interface Grant {
  readonly nonce: string | null
  readonly clientId: string
}

/** Starts a provider on a free port. */
export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const grants = new Map<string, Grant>()
  let key = newKey()
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname } = new URL(request.url ?? '/', provider.issuer)
    provider.requests.push(pathname)
    const override = provider.overrides.get(pathname)
    if (override) override(response)
    else void ROUTES[pathname]?.(request, response)
  }
  let server = createServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`

  const ROUTES: Record<string, (request: IncomingMessage, response: ServerResponse) => void | Promise<void>> =
    {
      '/.well-known/openid-configuration': (_, response) =>
        json(response, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          id_token_signing_alg_values_supported: ['RS256'],
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          ...provider.metadata,
        }),
      '/keys': (_, response) =>
        json(response, { keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: key.id, use: 'sig' }] }),
      async '/token'(request, response) {
        const form = new URLSearchParams(await textOf(request))
        provider.tokenForms.push(form)
        const code = form.get('code') ?? ''
        const grant = grants.get(code)
        if (!grants.delete(code) || !grant) return json(response, { error: 'invalid_grant' }, 400)
        const now = Math.floor(Date.now() / 1000)
        const claims = {
          iss: issuer,
          aud: grant.clientId,
          iat: now,
          exp: now + 60,
          nonce: grant.nonce,
          ...provider.person,
          ...provider.forged,
        }
        const token = (provider.idToken ?? provider.signed)(claims)
        json(response, { access_token: 'an-access-token', token_type: 'bearer', id_token: token })
      },
    }

  const provider: ScriptedProvider = {
    issuer,
    requests: [],
    tokenForms: [],
    person: { sub: 'person-1', preferred_username: 'pat' },
    forged: {},
    idToken: undefined,
    metadata: {},
    overrides: new Map(),
    rotate() {
      const old = key
      key = newKey()
      return (claims) => signedWith(old, claims)
    },
    publicKey: () => key.publicKey,
    signed: (claims) => signedWith(key, claims),
    authorize(location) {
      const { searchParams } = new URL(location)
      const code = randomBytes(8).toString('hex')
      grants.set(code, { nonce: searchParams.get('nonce'), clientId: searchParams.get('client_id') ?? '' })
      const callback = new URL(searchParams.get('redirect_uri') ?? '')
      callback.searchParams.set('code', code)
      callback.searchParams.set('state', searchParams.get('state') ?? '')
      return callback.href
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
    async resume() {
      server = createServer(listener)
      await once(server.listen(port, '127.0.0.1'), 'listening')
    },
    async [Symbol.asyncDispose]() {
      if (server.listening) await provider.close()
    },
  }
  return provider
}

/** An id_token without a signature. */
export function unsigned(claims: Claims): string {
  return `${part({ alg: 'none' })}.${part(claims)}.`
}

/** An id_token with a symmetric signature (HS256) by this secret. */
export function signedBySecret(claims: Claims, secret: string | Buffer): string {
  const text = `${part({ alg: 'HS256' })}.${part(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The key pair that a provider signs with. */
interface SigningKey {
  readonly id: string
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

function signedWith({ id, privateKey }: SigningKey, claims: Claims): string {
  const text = `${part({ alg: 'RS256', kid: id })}.${part(claims)}`
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`
}

function newKey(): SigningKey {
  return { id: randomBytes(4).toString('hex'), ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
