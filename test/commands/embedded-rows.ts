import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The rows that a statement returns from the embedded database of a data folder. */
export function embeddedRows(dataDir: string, statement: string): Record<string, unknown>[] {
  const file = new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true })
  try {
    return file
      .prepare(statement)
      .all()
      .map((row) => ({ ...row }))
  } finally {
    file.close()
  }
}
