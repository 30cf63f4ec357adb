import { AccountAuthenticator } from '../auth/account-authenticator.ts'
import type { JsonApi, JsonParts } from '../api/json-api.ts'
import { ModelLists } from '../relay/model-lists.ts'
import { hashSession, type Secrets } from '../store/secrets.ts'

/** The API for accounts and administration, loaded on first use: an idle gateway does not need it. */
export function lazyJsonApi(
  secrets: Secrets,
  parts: Omit<JsonParts, 'accounts' | 'models'>,
): () => Promise<JsonApi> {
  const { store, settings, hashAccessToken } = parts.management
  let opened: Promise<JsonApi> | undefined
  const open = async (): Promise<JsonApi> => {
    const { JsonApi } = await import('../api/json-api.ts')
    const accounts = new AccountAuthenticator({
      store,
      hashAccessToken,
      hashSession: (session) => hashSession(secrets, session),
      trustedProxies: () => settings().options.trustedProxies,
    })
    return new JsonApi({ ...parts, accounts, models: new ModelLists() })
  }
  return () => (opened ??= open())
}
