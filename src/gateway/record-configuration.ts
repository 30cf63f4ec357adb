import type { Config } from '../config/config.ts'
import { declaredSettings } from '../config/declared-settings.ts'
import { declaredId } from '../domain/channel-id.ts'
import type { Store } from '../store/store.ts'
import { fileOrigin, type FirstCredentials, seedAccounts } from './seed-accounts.ts'

/**
 * Takes a new or changed gateway.yaml over into the database: creates the users that it declares, and adds
 * what has changed since it was last read to the audit log. Resolves to the first user's credentials if this
 * created them.
 */
export async function recordConfiguration(
  store: Store,
  { users, fileNode, priceFile }: Config,
): Promise<FirstCredentials | undefined> {
  const firstCredentials = await seedAccounts(store, users)
  await store.write('recordDeclaredRows', {
    settings: declaredSettings(fileNode, declaredId, priceFile?.tree),
    origin: fileOrigin('gateway.yaml'),
  })
  return firstCredentials
}
