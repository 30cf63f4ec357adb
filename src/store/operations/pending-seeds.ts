import type { UserSeed } from '../../domain/records/user.ts'
import type { Secrets } from '../secrets.ts'
import { declaredChanges } from './declared-changes.ts'
import type { Db } from './operation.ts'
import { presentAccounts } from './present-accounts.ts'

/** Indexes of the declarations for which `seedUsers` would change something. */
export async function pendingSeeds(
  db: Db,
  { seeds }: { readonly seeds: readonly UserSeed[] },
  secrets: Secrets,
): Promise<number[]> {
  const present = await presentAccounts(db, seeds, secrets)
  return seeds.flatMap((seed, index) => {
    const { users, tokens, newUsers, newTokens } = declaredChanges(present, [seed])
    return users.size + tokens.size + newUsers.length + newTokens.length > 0 ? [index] : []
  })
}
