import { KEY_END_LENGTH, type Secrets } from '../secrets.ts'
import { decryptTokenKey } from './find-accounts.ts'
import { type Db, inChunks } from './operation.ts'

/**
 * Returns labels of API keys by id, including deleted keys: `user / key` if `withOwners`, otherwise the name
 * alone. Keys with the same label also get the last four characters of the key.
 */
export async function keyLabels(
  db: Db,
  ids: readonly number[],
  withOwners: boolean,
  secrets: Secrets,
): Promise<ReadonlyMap<string | number, string>> {
  const rows = await inChunks(ids, (some) =>
    db
      .selectFrom('tokens')
      .innerJoin('users', 'users.id', 'tokens.user_id')
      .select(['tokens.id', 'tokens.name', 'tokens.key_cipher', 'users.username'])
      .where('tokens.id', 'in', some)
      .execute(),
  )
  const plain = rows.map(({ name, username }) => (withOwners ? `${username} / ${name}` : name))
  const seen = new Set<string>()
  const repeated = new Set(plain.filter((label) => seen.size === seen.add(label).size))
  return new Map(
    rows.map(({ id, key_cipher }, index) => {
      const label = plain[index] ?? ''
      if (!repeated.has(label)) return [id, label]
      return [id, `${label} (…${decryptTokenKey(key_cipher, id, secrets).slice(-KEY_END_LENGTH)})`]
    }),
  )
}
