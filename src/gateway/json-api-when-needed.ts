import type { JsonApi, JsonParts } from '../api/json-api.ts'
import { AccountAuthenticator } from '../accounts/authentication/account-authenticator.ts'
import { ModelLists } from '../relay/model-lists.ts'
import { hashSession, type Secrets } from '../store/secrets.ts'

/** Returns a function that makes the JSON API at its first call: a gateway that only relays needs none. */
export function jsonApiWhenNeeded(
  secrets: Secrets,
  parts: Omit<JsonParts, 'accounts' | 'models'>,
): () => Promise<JsonApi> {
  const { store, hashAccessToken, settings } = parts.management
  let made: Promise<JsonApi> | undefined
  const make = async (): Promise<JsonApi> => {
    const { JsonApi } = await import('../api/json-api.ts')
    return new JsonApi({
      ...parts,
      accounts: new AccountAuthenticator({
        store,
        hashAccessToken,
        hashSession: (session) => hashSession(secrets, session),
        trustedProxies: () => settings().options.trusted_proxies,
      }),
      models: new ModelLists(),
    })
  }
  return () => (made ??= make())
}
