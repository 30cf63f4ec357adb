import { AccountAuthenticator } from '../accounts/authentication/account-authenticator.ts'
import type { JsonApi, JsonApiServices } from '../api/json-api.ts'
import { ModelLists } from '../call/model-lists.ts'
import { hashSession, type Secrets } from '../store/secrets.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'

/**
 * Returns a function that creates the JSON API at its first call, because a gateway that only serves model
 * calls does not need it.
 */
export function jsonApiWhenNeeded(
  secrets: Secrets,
  ends: ModelRetirements,
  services: Omit<JsonApiServices, 'accounts' | 'models'>,
): () => Promise<JsonApi> {
  const { store, hashAccessToken, settings } = services.management
  let made: Promise<JsonApi> | undefined
  const make = async (): Promise<JsonApi> => {
    const { JsonApi } = await import('../api/json-api.ts')
    return new JsonApi({
      ...services,
      accounts: new AccountAuthenticator({
        store,
        hashAccessToken,
        hashSession: (session) => hashSession(secrets, session),
        trustedProxies: () => settings().options.trusted_proxies,
      }),
      models: new ModelLists(ends),
    })
  }
  return () => (made ??= make())
}
