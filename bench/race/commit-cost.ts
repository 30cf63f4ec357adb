import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { quantile } from '../measuring/statistics.ts'

const COMMITS = 300

/**
 * Milliseconds for one small commit on the disk of the temporary folder, written like the store does: median
 * and 99th percentile of a hundred. The end of each response waits for one commit.
 */
export function commitCost(): { readonly p50: number; readonly p99: number } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const db = new DatabaseSync(join(folder, 'commits.db'))
  try {
    db.exec('PRAGMA journal_mode = WAL')
    db.exec('PRAGMA synchronous = FULL')
    db.exec('CREATE TABLE row (id INTEGER PRIMARY KEY, value TEXT)')
    const insert = db.prepare('INSERT INTO row (value) VALUES (?)')
    const times = Array.from({ length: COMMITS }, () => {
      const began = performance.now()
      insert.run('x'.repeat(200))
      return performance.now() - began
    }).toSorted((a, b) => a - b)
    return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
  } finally {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
