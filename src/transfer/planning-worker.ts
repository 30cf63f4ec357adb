import process from 'node:process'
import { once } from 'node:events'
import type { ReadLimits } from '@sluice/import/read-limits'
import { readConfig } from '../config/config.ts'
import { compareLines, countLines } from '../domain/import-line.ts'
import type { PlannedAccount } from '../management/imports.ts'
import { highestTokenId, planImport } from './import.ts'
import { type PlanningMessage, NEXT_ACCOUNTS, type PlanningTask } from './planning.ts'
import { readImport } from './interpret-source.ts'
import { inspectTarget, reserve } from './target.ts'

/**
 * Limits on an uploaded file. They are low, because this process has little memory and a client is waiting.
 */
const UPLOAD_LIMITS: ReadLimits = { rows: 500_000, bytes: 128 * 2 ** 20, ms: 60_000 }

/** Maximum number of lines in a report. Further lines are counted but not listed. */
const MAX_LINES = 10_000

/** Maximum number of users and tokens in one message. */
const MAX_ACCOUNTS = 200

const NOBODY = { merge: new Set<string>(), role: new Set<string>() }

/**
 * Plans one import and sends the plan to the gateway. Then sends the planned accounts in parts, one part per
 * request.
 */
async function sendPlan(task: PlanningTask): Promise<void> {
  const { environment, texts, path, shown, apply } = task
  const source = await readImport(path, {
    limits: UPLOAD_LIMITS,
    shown,
    // Environment variables are not read: an uploaded file could otherwise send secrets of this machine to an
    // address of its choice.
    variable: () => undefined,
    missing: 'is not read over HTTP: give the channel its key',
  })
  const config = readConfig(environment, texts)
  const { state, hashes } = await inspectTarget(environment, config.users)
  const plan = planImport(source, { config, stated: NOBODY }, state, hashes)
  const { configuration, accounts, passwords, units } = plan
  if (apply) await reserve(environment.databaseUrl, highestTokenId(accounts))
  const lines = [...plan.lines, ...accounts.flatMap((planned) => planned.lines)].toSorted(compareLines)
  send({
    kind: 'plan',
    source: source.name,
    entries: configuration.entries,
    channels: configuration.channels,
    lines: lines.slice(0, MAX_LINES),
    counts: countLines(lines),
    passwordsLeft: passwords,
    unitsConverted: units.areSame ? null : units.description,
  })
  for (const part of partsOf(accounts)) {
    await once(process, 'message')
    send({ kind: 'accounts', accounts: part })
  }
  await once(process, 'message')
  send({ kind: 'accounts', accounts: [] })
}

function* partsOf(accounts: readonly PlannedAccount[]): Iterable<readonly PlannedAccount[]> {
  let part: PlannedAccount[] = []
  let size = 0
  for (const account of accounts) {
    part.push(account)
    size += 1 + account.account.tokens.length
    if (size < MAX_ACCOUNTS) continue
    yield part
    part = []
    size = 0
  }
  if (part.length > 0) yield part
}

function send(message: PlanningMessage): void {
  process.send?.(message)
}

process.once('disconnect', () => process.exit(1))
process.once('message', (task: PlanningTask | typeof NEXT_ACCOUNTS) => {
  if (task === NEXT_ACCOUNTS) return
  sendPlan(task).catch((error: unknown) =>
    send({ kind: 'refused', message: error instanceof Error ? error.message : String(error) }),
  )
})
