/** Names of the tables of the content log. */
interface ContentTables {
  readonly keys: string
  readonly entries: string
  readonly deletions: string
}

const KEY = 'id, user_id as "userId", day, end_day as "endDay", cipher'
const MARK =
  'id, user_id as "userId", token_id as "tokenId", from_ms as "fromMs", to_ms as "toMs", done as "isDone"'

/** The columns of an entry without its content, except the day on which it is removed. */
export const HEAD_COLUMNS =
  'id, user_id as "userId", token_id as "tokenId", started_ms as "startedMs", expires_ms as "expiresMs", what, bytes, ' +
  'sha256, lengths, key_id as "keyId", object, object_at as "objectAt", object_bytes as "objectBytes"'

/** The statements that are the same in SQLite and PostgreSQL, with `?` for each value. */
export function contentStatements({ keys, entries, deletions }: ContentTables) {
  return {
    /** Beginning of a query for keys. */
    selectKeys: `select ${KEY} from ${keys}`,
    keysOfUser: `select ${KEY} from ${keys} where user_id = ? and day >= ? and day <= ? order by number`,
    usersOfKeys: `select distinct user_id as id from ${keys}`,
    removeKeysUntil: `delete from ${keys} where end_day <= ? returning id`,
    /** Beginning of a change of an entry; its condition follows. */
    replaceEntry: `update ${entries} set key_id = ?, object = ?, object_at = ?, object_bytes = ?, sealed = ? where id = ?`,
    sealedOf: `select sealed from ${entries} where id = ?`,
    objects: `select distinct object from ${entries} where object <> ''`,
    marks: `select ${MARK} from ${deletions} order by id`,
    addMark: `insert into ${deletions} (user_id, token_id, from_ms, to_ms, at_ms, done) values (?, ?, ?, ?, ?, ?) returning id`,
    finishMark: `update ${deletions} set done = ? where id = ?`,
    removeMarks: `delete from ${deletions} where done = ? and at_ms < ?`,
  } as const
}
