import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Browser } from '../fixtures/browser.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  type ScriptedProvider,
  signedBySecret,
  startScriptedProvider,
  unsigned,
} from '../fixtures/scripted-oidc.ts'

const SECRET = 'the-client-secret-0123456789'
const AGAIN = 'could not be verified'

let gateway: RunningGateway
let honest: ScriptedProvider
let other: ScriptedProvider

const client = (name: string, { issuer }: ScriptedProvider) => ({
  name,
  issuer,
  client_id: `sluice-at-${name}`,
  client_secret: SECRET,
})

beforeAll(async () => {
  honest = await startScriptedProvider()
  other = await startScriptedProvider()
  gateway = await startGateway({
    config: {
      rate_limits: { global: { requests: 0 } },
      users: [ROOT, user(2, 'ann', [])],
      login: { oidc: [client('corp', honest), client('other', other)] },
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await honest?.[Symbol.asyncDispose]()
  await other?.[Symbol.asyncDispose]()
})
beforeEach(() => {
  for (const provider of [honest, other]) {
    provider.person = { sub: 'person-1', preferred_username: 'pat' }
    provider.forged = {}
    provider.idToken = undefined
    provider.metadata = {}
  }
})

const pathOf = (name: string, query = ''): string => `${gateway.url}/api/user/oidc/${name}${query}`
const begin = (browser: Browser, name = 'corp', query = ''): Promise<string> =>
  browser.locationOf(pathOf(name, query))

/** The status and message at the end of a sign-in, which must not give a session unless it is a redirect. */
async function end(browser: Browser, callback: string): Promise<readonly [number, string]> {
  const answer = await browser.get(callback)
  if (answer.status !== 302) expect(browser.cookies.has('session')).toBe(false)
  return [answer.status, answer.status === 302 ? '' : JSON.parse(answer.text).message]
}

/** A complete sign-in in a new browser. */
async function signIn(name = 'corp'): Promise<readonly [number, string]> {
  const browser = new Browser()
  const provider = name === 'corp' ? honest : other
  return end(browser, provider.authorize(await begin(browser, name)))
}

describe('a sign-in without an attack', () => {
  test('an OIDC sign-in without an attack succeeds, and uses PKCE, state and nonce', async () => {
    const browser = new Browser()
    const asked = new URL(await begin(browser))
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      client_id: 'sluice-at-corp',
      redirect_uri: pathOf('corp', '/callback'),
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(await end(browser, honest.authorize(asked.href))).toEqual([302, ''])
    expect(honest.tokenForms.at(-1)?.get('code_verifier')).toMatch(/^[\w-]{43}$/)
  })
})

describe('attacks on a sign-in', () => {
  test('an OIDC authorization code that was used is refused', async () => {
    const browser = new Browser()
    const used = new URL(honest.authorize(await begin(browser)))
    expect((await browser.get(used.href)).status).toBe(302)
    const thief = new Browser()
    const own = new URL(honest.authorize(await begin(thief)))
    own.searchParams.set('code', used.searchParams.get('code') ?? '')
    expect(await end(thief, own.href)).toEqual([401, expect.stringContaining(AGAIN)])
    expect([...thief.cookies]).toEqual([])
  })

  test('an OIDC state that was used is refused before the identity provider is called', async () => {
    const browser = new Browser()
    const callback = honest.authorize(await begin(browser))
    const jar = new Map(browser.cookies)
    expect((await browser.get(callback)).status).toBe(302)
    const thief = new Browser()
    for (const [name, value] of jar) thief.cookies.set(name, value)
    const before = honest.requests.length
    expect(await end(thief, callback)).toEqual([401, expect.stringContaining('has ended already')])
    expect([...thief.cookies]).toEqual([])
    expect(honest.requests).toHaveLength(before)
  })

  test('an OIDC callback in another browser than the one that began the sign-in is refused', async () => {
    const victim = new Browser()
    const callback = honest.authorize(await begin(new Browser()))
    expect(await end(victim, callback)).toEqual([401, expect.stringContaining('began no such sign-in')])
    // A sign-in of the victim's own does not change that.
    await begin(victim)
    expect(await end(victim, callback)).toEqual([401, expect.stringContaining('began no such sign-in')])
  })

  test('an OIDC callback with a state that is made up, missing or altered is refused', async () => {
    const browser = new Browser()
    const callback = new URL(honest.authorize(await begin(browser)))
    for (const state of ['x', 'y'.repeat(43), `${callback.searchParams.get('state')?.slice(0, 42)}!`]) {
      const altered = new URL(callback)
      altered.searchParams.set('state', state)
      expect((await end(browser, altered.href))[0]).toBe(401)
    }
    callback.searchParams.delete('state')
    expect((await end(browser, callback.href))[0]).toBe(401)
  })

  test("a callback with one identity provider's code at another provider's path is refused, and the code is not sent there", async () => {
    const browser = new Browser()
    const callback = honest.authorize(await begin(browser)).replace('/oidc/corp/', '/oidc/other/')
    const before = other.requests.length
    expect(await end(browser, callback)).toEqual([401, expect.stringContaining('began no such sign-in')])
    // The sign-in has not ended, and can still be completed where it began.
    expect(browser.cookies.size).toBe(1)
    // The code never reaches the provider that did not issue it.
    expect(other.requests).toHaveLength(before)
  })

  test('a callback that names another issuer is refused if the identity provider names its issuer there (RFC 9207)', async () => {
    honest.metadata = { authorization_response_iss_parameter_supported: true }
    const browser = new Browser()
    const callback = `${honest.authorize(await begin(browser))}&iss=${encodeURIComponent(other.issuer)}`
    expect(await end(browser, callback)).toEqual([401, expect.stringContaining(AGAIN)])
  })

  test.each([
    ['an id_token without a signature', () => void (honest.idToken = unsigned)],
    [
      'an id_token that another key has signed',
      () => void (honest.idToken = (claims) => other.signed(claims)),
    ],
    [
      'an id_token that was altered',
      () =>
        void (honest.idToken = (claims) => {
          const [head = '', , signature = ''] = honest.signed(claims).split('.')
          const altered = Buffer.from(JSON.stringify({ ...claims, sub: 'person-2' })).toString('base64url')
          return `${head}.${altered}.${signature}`
        }),
    ],
    ['an id_token for another client', () => void (honest.forged = { aud: 'another-client' })],
    [
      'an id_token for several clients, authorized for another',
      () => void (honest.forged = { aud: ['sluice-at-corp', 'another'], azp: 'another' }),
    ],
    ['an id_token of another issuer', () => void (honest.forged = { iss: other.issuer })],
    ['an id_token with another nonce', () => void (honest.forged = { nonce: 'another' })],
    ['an id_token without a nonce', () => void (honest.forged = { nonce: undefined })],
    ['an id_token that has expired', () => void (honest.forged = { exp: seconds(-120) })],
    ['an id_token of the future', () => void (honest.forged = { nbf: seconds(120) })],
    ['an id_token without a subject', () => void (honest.forged = { sub: undefined })],
    ['an id_token with an endless subject', () => void (honest.forged = { sub: 'x'.repeat(256) })],
    ['no id_token', () => void (honest.idToken = () => '')],
  ])('an OIDC sign-in with an invalid ID token is refused: %s', async (_, attack) => {
    attack()
    expect(await signIn()).toEqual([401, expect.stringContaining(AGAIN)])
  })

  // Without a check of the signature, the library accepts every algorithm in the metadata.
  test.each<[string, () => (claims: Readonly<Record<string, unknown>>) => string]>([
    ['without a signature', () => unsigned],
    ['with a signature by the client secret', () => (claims) => signedBySecret(claims, SECRET)],
    [
      'with a signature by the public key, as a text that everybody can read',
      () => (claims) => signedBySecret(claims, honest.publicKey().export({ type: 'spki', format: 'pem' })),
    ],
    [
      'with a signature by the bytes of the public key',
      () => (claims) => signedBySecret(claims, honest.publicKey().export({ type: 'spki', format: 'der' })),
    ],
  ])('an OIDC ID token %s is refused, even if the provider lists that algorithm', async (_, forge) => {
    honest.metadata = { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'] }
    expect(await signIn()).toEqual([302, ''])
    honest.idToken = forge()
    expect(await signIn()).toEqual([401, expect.stringContaining(AGAIN)])
  })

  test("an ID token is accepted if the identity provider's clock differs by less than a minute", async () => {
    honest.forged = { exp: seconds(-30), iat: seconds(-90) }
    expect(await signIn()).toEqual([302, ''])
    honest.forged = { nbf: seconds(30), iat: seconds(30) }
    expect(await signIn()).toEqual([302, ''])
  })

  test('a first OIDC sign-in with the name of a local user, in either case, is refused, and links no identity', async () => {
    for (const name of ['ann', 'ANN', 'root']) {
      honest.person = { sub: `claims-to-be-${name}`, preferred_username: name }
      expect(await signIn()).toEqual([403, expect.stringContaining('already')])
    }
    const names = databaseOf(gateway.dataDir)
      .users()
      .map(({ username }) => username)
    expect(names.filter((name) => /^(?:ann|root)$/i.test(name))).toEqual(['root', 'ann'])
  })

  test.each([
    ['аnn', 'expected letters of one alphabet, found Latin and Cyrillic ones in "аnn"'],
    ['ａｎｎ', 'there is a user "ann" already, and "ａｎｎ" differs from it in forms of letters alone'],
  ])(
    "a first OIDC sign-in with a name that resembles a local user's is refused: %j",
    async (name, sentence) => {
      honest.person = { sub: `imitates-${name}`, preferred_username: name }
      const [status, text] = await signIn()
      expect([status, text]).toEqual([403, expect.stringContaining(sentence)])
      expect(text).toContain('ask an administrator for a user with another name')
    },
  )

  test('an OIDC sign-in is accepted with a name that mixes Latin letters with Chinese, Japanese or Korean ones', async () => {
    for (const name of ['Anna 安', 'Kenけん', 'Min민']) {
      honest.person = { sub: `is-${name}`, preferred_username: name }
      expect(await signIn()).toEqual([302, ''])
    }
  })

  test("a sign-in with the same subject at another issuer is another user's", async () => {
    await signIn()
    other.person = { sub: 'person-1', preferred_username: 'pat' }
    expect(await signIn('other')).toEqual([403, expect.stringContaining('"pat" already')])
    other.person = { sub: 'person-1', preferred_username: 'pat2' }
    expect(await signIn('other')).toEqual([302, ''])
  })

  test.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/.//evil.example',
    'javascript:alert(1)',
  ])('an OIDC sign-in that should continue at another site (%j) ends at / instead', async (next) => {
    const browser = new Browser()
    const callback = honest.authorize(await begin(browser, 'corp', `?next=${encodeURIComponent(next)}`))
    expect((await browser.get(callback)).headers.location).toBe('/')
  })

  test('a Host header of the client does not change the address to which the identity provider returns the browser', async () => {
    const browser = new Browser()
    const location = await browser.locationOf(pathOf('corp'), { 'x-forwarded-host': 'evil.example' })
    expect(new URL(location).searchParams.get('redirect_uri')).toBe(pathOf('corp', '/callback'))
    expect((await browser.get(pathOf('corp'), { host: 'evil.example/x@y' })).status).toBe(400)
  })

  test('an error of the identity provider ends the sign-in, and the answer repeats no text from the request', async () => {
    const browser = new Browser()
    const callback = new URL(honest.authorize(await begin(browser)))
    callback.searchParams.delete('code')
    callback.searchParams.set('error', 'access_denied')
    callback.searchParams.set('error_description', 'CALL 555-0100')
    expect(await end(browser, callback.href)).toEqual([401, expect.stringContaining('access_denied')])
    const again = new URL(honest.authorize(await begin(browser)))
    again.searchParams.set('error', 'Call 555-0100 now')
    const [, message] = await end(browser, again.href)
    expect(message).not.toContain('555-0100')
    expect(gateway.logs()).not.toContain('555-0100')
  })
})

test('after an identity provider changes its signing keys, the new ones are accepted at once and the old ones refused', async () => {
  expect(await signIn()).toEqual([302, ''])
  const withOldKey = honest.rotate()
  expect(await signIn()).toEqual([302, ''])
  honest.idToken = withOldKey
  expect(await signIn()).toEqual([401, expect.stringContaining(AGAIN)])
})

test("a private address in an identity provider's metadata is not fetched if it is not the issuer's own", async () => {
  honest.metadata = { token_endpoint: `${other.issuer}/token`, jwks_uri: `${other.issuer}/keys` }
  const before = other.requests.length
  expect(await signIn()).toEqual([503, expect.stringContaining('"corp" cannot be used')])
  expect(other.requests).toHaveLength(before)
})

test('the log contains no client secret, code, token or cookie of an OIDC sign-in', () => {
  const log = gateway.logs()
  expect(log).not.toContain(SECRET)
  expect(log).not.toContain('an-access-token')
  for (const form of honest.tokenForms) {
    expect(log).not.toContain(form.get('code') ?? SECRET)
    expect(log).not.toContain(form.get('code_verifier') ?? SECRET)
  }
})

function seconds(fromNow: number): number {
  return Math.floor(Date.now() / 1000) + fromNow
}
