import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Context, Provider } from 'oidc-provider'
import { Browser } from './browser.ts'

/** A client that is registered at a provider. */
export interface RegisteredClient {
  readonly id: string
  readonly secret: string
  readonly redirectUri: string
  readonly afterLogout: string
}

/** An identity provider as companies run it, on this machine. */
export interface RealProvider extends AsyncDisposable {
  readonly issuer: string
  /** The claims about each person by subject; the provider returns them at its userinfo endpoint. */
  readonly people: Map<string, Readonly<Record<string, unknown>>>
  /** The subject of the person who types a password next. */
  who: string
  /** Follows the pages of the provider as a browser does; resolves to the last address. */
  visit(browser: Browser, location: string): Promise<string>
}

/**
 * Writes the page that asks for confirmation of a sign-out; the library's own page loads a font from another
 * host.
 */
function askToSignOut(answer: { body: unknown }, form: string): void {
  const button =
    '<button form="op.logoutForm" type="submit" name="logout" value="yes">Yes, sign me out</button>'
  answer.body = `<!doctype html><title>Sign out</title>${form}${button}`
}

/** Starts a provider on a free port of 127.0.0.1; its issuer may have another host name. */
export async function startRealProvider(
  client: RegisteredClient,
  host: '127.0.0.1' | 'localhost' = '127.0.0.1',
): Promise<RealProvider> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [client.redirectUri],
        post_logout_redirect_uris: [client.afterLogout],
      },
    ],
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'], email: ['email'] },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true, logoutSource: askToSignOut },
    },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', kid: 'first' }] },
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    interactions: { url: () => '/sign-in-page' },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, ...real.people.get(id) }),
    }),
    // The user is not asked for consent, because the company owns both sides.
    async loadExistingGrant({ oidc: { session, client } }: Context) {
      const granted = session.grantIdFor(client.clientId)
      if (granted !== undefined) return provider.Grant.find(granted)
      const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  const callback = provider.callback()
  server.on('request', (request, response) => {
    if (request.url === '/sign-in-page')
      void provider.interactionFinished(request, response, { login: { accountId: real.who } })
    else callback(request, response)
  })
  const real: RealProvider = {
    issuer,
    people: new Map(),
    who: '',
    async visit(browser, location) {
      let at = location
      while (at.startsWith(issuer)) at = await browser.locationOf(at)
      return at
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
  return real
}
