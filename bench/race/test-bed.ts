import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call, Candidate, Running } from '../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../candidates/candidates.ts'
import { execute } from '../load/execute.ts'
import type { Order, Measurements } from '../load/orders.ts'
import { messageTo } from '../load/requests.ts'
import { nextMessage, startHelper } from '../measuring/started.ts'

/** The upstream, the generator, and the candidates between them. */
export interface TestBed extends AsyncDisposable {
  /** Candidates that could be started; all of them run at the same time. */
  readonly running: ReadonlyMap<CandidateName, Running>
  /** Candidates that could not be started, with the reason. */
  readonly skipped: readonly string[]
  /** Starts another process of a candidate. */
  startAnother(name: CandidateName): Promise<Running>
  /** Sends the generator an order, and waits until it is done; rejects if a call failed. */
  execute(order: Order): Promise<Measurements>
  /** Makes the upstream end its streams. */
  finish(): void
  /** Ends all open streams after a failure. */
  recover(): Promise<void>
}

/**
 * A stream that each candidate carries from start to end, like a gateway in service always does, so that idle
 * behaviour (this gateway releases memory) does not affect the figures, except those of bursts.
 */
const HELD_STREAM: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'held', bytes: 100 }

/** Starts everything on free ports, with data in a temporary folder. */
export async function openTestBed(names: readonly CandidateName[]): Promise<TestBed> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const upstream = opened.use(startHelper('load/lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('load/generator.ts'))
  await nextMessage(generator)

  let started = 0
  const start = (name: CandidateName): Promise<Running | string> => {
    const own = join(folder, `${name}-${started++}`)
    mkdirSync(own)
    const candidate: Candidate = CANDIDATES[name]
    return candidate.start(upstreamPort, own)
  }
  const running = new Map<CandidateName, Running>()
  const leftOut: string[] = []
  for (const name of names) {
    const one = await start(name)
    if (typeof one === 'string') leftOut.push(`${name} is left out: ${one}`)
    else running.set(name, opened.use(one))
  }
  const finish = (): void => void upstream.child.send('finish')
  const tell = (order: Order): Promise<Measurements> => execute(generator, order)
  for (const [name, { port }] of running)
    await tell({ kind: 'hold', port, message: messageTo(CANDIDATES[name], port, HELD_STREAM) ?? '' })
  const everything = opened.move()
  return {
    running,
    skipped: leftOut,
    async startAnother(name) {
      const one = await start(name)
      if (typeof one === 'string') throw new Error(one)
      return one
    },
    execute: tell,
    finish,
    async recover() {
      finish()
      const answer = nextMessage<Measurements>(generator)
      generator.child.send({ kind: 'ended' } satisfies Order)
      await answer
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}
