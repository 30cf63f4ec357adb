import { sql } from 'kysely'
import { CHANNEL } from '../../domain/records/channel.ts'
import type { RecordColumns } from '../../domain/records/record.ts'
import { TOKEN } from '../../domain/records/token.ts'
import { USER } from '../../domain/records/user.ts'
import { undeletedTokensOfUser } from '../account-rows.ts'
import type { SizedRead } from '../sized-reads.ts'
import { selectAuditEntriesBefore, selectAuditPage } from './audit-log.ts'
import { pageOfTokens } from './find-accounts.ts'
import type { Db } from './operation.ts'
import { bytesOfScan } from './usage-log.ts'

/**
 * SQL for the bytes of all texts in a row, one constant for each table. The memory for rows is taken by this size
 * before they are read; databases know the length of a text without reading it.
 */
const TOKEN_BYTES = textBytesOf(TOKEN)
const USER_BYTES = textBytesOf(USER)
const CHANNEL_BYTES = textBytesOf(CHANNEL)
const SETTING_BYTES = bytesOf('section', 'name', 'value')
const ENTRY_BYTES = bytesOf('actor', 'address', 'action', 'object_name', 'changes')

const SIZES: { readonly [Name in SizedRead]: (db: Db, input: never) => Promise<number> } = {
  auditEntriesBefore: (db, input: Parameters<typeof selectAuditEntriesBefore>[1]) =>
    sumOf(selectAuditEntriesBefore(db, input).select(ENTRY_BYTES).execute()),
  auditPage: (db, input: Parameters<typeof selectAuditPage>[1]) =>
    sumOf(selectAuditPage(db, input).select(ENTRY_BYTES).execute()),
  findTokenWithKey: (db, { tokenId }: { readonly tokenId: number }) =>
    sumOf(db.selectFrom('tokens').select(TOKEN_BYTES).where('id', '=', tokenId).execute()),
  findTokenPageWithKeys: (db, input: Parameters<typeof pageOfTokens>[1]) =>
    sumOf(pageOfTokens(db, input).select(TOKEN_BYTES).execute()),
  listTokensWithKeys: (db, { userId }: { readonly userId: number }) =>
    sumOf(undeletedTokensOfUser(db, userId).select(TOKEN_BYTES).execute()),
  findTokensWithKeys: tokenBytes,
  tokensWithOwners: tokenBytes,
  managedUser: userBytes,
  // The matching users are known only after reading, so each user is counted with the size of the largest
  // one.
  pageOfUsers: async (db, { limit }: { readonly limit: number }) => {
    const users = db.selectFrom('users').select(USER_BYTES).as('users')
    const largest = await db
      .selectFrom(users)
      .select(({ fn }) => fn.max<number | null>('bytes').as('bytes'))
      .execute()
    return limit * (await sumOf(Promise.resolve(largest)))
  },
  scanUsage: bytesOfScan,
  storedConfiguration: async (db) =>
    (await sumOf(db.selectFrom('channels').select(CHANNEL_BYTES).execute())) +
    (await sumOf(db.selectFrom('stored_settings').select(SETTING_BYTES).execute())),
}

/** Returns the maximum number of bytes of text that a read would return now. */
export function readBytes(
  db: Db,
  { name, input }: { readonly name: SizedRead; readonly input: unknown },
): Promise<number> {
  return SIZES[name](db, input as never)
}

function tokenBytes(db: Db, { tokenIds }: { readonly tokenIds: readonly number[] }): Promise<number> {
  return sumOf(db.selectFrom('tokens').select(TOKEN_BYTES).where('id', 'in', tokenIds).execute())
}

function userBytes(db: Db, { userId }: { readonly userId: number }): Promise<number> {
  return sumOf(db.selectFrom('users').select(USER_BYTES).where('id', '=', userId).execute())
}

function textBytesOf({ columns }: RecordColumns) {
  return bytesOf(...columns.filter(({ type }) => type.column === 'text').map(({ name }) => name))
}

function bytesOf(...columns: readonly string[]) {
  const lengths = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`)
  return sql<number>`${sql.join(lengths, sql` + `)}`.as('bytes')
}

async function sumOf(rows: Promise<readonly { readonly bytes: number | null }[]>): Promise<number> {
  return (await rows).reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
}
