import type { DeclaredSetting } from '../../domain/audit.ts'
import { declaredRows, isSameRows } from '../audit/declared-rows.ts'
import type { Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Most rows in one statement; databases limit the number of parameters. */
const MAX_ROWS = 500

/** Notes the settings that the configuration file declares, to find out what its next version changes. */
export async function noteDeclared(
  db: Db,
  { settings }: { readonly settings: readonly DeclaredSetting[] },
  secrets: Secrets,
): Promise<void> {
  const rows = declaredRows(settings, secrets)
  const present = await db.selectFrom('declared_settings').selectAll().execute()
  if (isSameRows(present, rows)) return
  await db.deleteFrom('declared_settings').execute()
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await db
      .insertInto('declared_settings')
      .values(rows.slice(start, start + MAX_ROWS))
      .execute()
}
