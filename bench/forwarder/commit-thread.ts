import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

// Writes a row for each call and the sum of one account, the minimum that a ledger writes, synced like the
// gateway's.
const db = new DatabaseSync(workerData as string)
db.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE calls (id INTEGER PRIMARY KEY, tokens INTEGER) STRICT;
  CREATE TABLE account (id INTEGER PRIMARY KEY, used INTEGER) STRICT;
  INSERT INTO account VALUES (1, 0);
`)
const begin = db.prepare('BEGIN IMMEDIATE')
const insert = db.prepare('INSERT INTO calls (tokens) VALUES (?)')
const charge = db.prepare('UPDATE account SET used = used + ? WHERE id = 1')
const commit = db.prepare('COMMIT')

parentPort?.on('message', (calls: readonly number[]) => {
  begin.run()
  let sum = 0
  for (const tokens of calls) {
    insert.run(tokens)
    sum += tokens
  }
  charge.run(sum)
  commit.run()
  parentPort?.postMessage(true)
})
