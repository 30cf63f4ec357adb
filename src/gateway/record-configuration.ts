import type { Config } from '../config/config.ts'
import { declaredSettings } from '../config/declared-settings.ts'
import { declaredId } from '../domain/channel-id.ts'
import type { Store } from '../store/store.ts'
import { configFileOrigin, type FirstCredentials, seedAccounts } from './seed-accounts.ts'

/**
 * Brings the database up to date with a new or changed gateway.yaml: creates the users that it declares, and
 * records in the audit log what has changed since it was last read. Resolves to the credentials of the first
 * user if that was created.
 */
export async function recordConfiguration(
  store: Store,
  { users, fileNode, priceFile, settings }: Config,
): Promise<FirstCredentials | undefined> {
  const firstCredentials = await seedAccounts(store, users)
  await store.write('recordDeclaredRows', {
    settings: declaredSettings(fileNode, declaredId, priceFile?.tree),
    origin: configFileOrigin('gateway.yaml'),
  })
  if (settings.mcp.toolsets.length > 0) await store.write('recordToolsets')
  return firstCredentials
}
