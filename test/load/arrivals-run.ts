import { databaseOf } from '../equipment/database.ts'
import { plainConfiguration } from '../equipment/configuration.ts'
import { startGateway } from '../equipment/gateway.ts'
import type { ArrivalsOrder, ArrivalsResult } from './arrivals.ts'
import { said, start } from './child.ts'

/** What came of calls through a gateway, one stretch of time after the other. */
export interface ArrivalsReport {
  readonly stretches: readonly ArrivalsResult[]
  /** Answers with 200, and rows that were charged: the same. */
  readonly answered: number
  readonly charged: number
}

/** Calls that come at given rates, one stretch after the other, through one gateway with everything on. */
export async function runArrivals(
  stretches: readonly { readonly perSecond: number; readonly seconds: number }[],
  options: Readonly<Record<string, unknown>> = {},
): Promise<ArrivalsReport> {
  const upstream = start(new URL('../../bench/lean-upstream.ts', import.meta.url))
  const generator = start(new URL('./arrivals.ts', import.meta.url))
  const port = await said<number>(upstream)
  const gateway = await startGateway({
    config: { ...plainConfiguration(`http://127.0.0.1:${port}/v1`), options },
    env: { LOG_LEVEL: 'warn' },
  })
  try {
    const results: ArrivalsResult[] = []
    for (const stretch of stretches) {
      const order: ArrivalsOrder = { port: gateway.port, key: 'ann', ...stretch }
      const result = said<ArrivalsResult>(generator)
      generator.send(order)
      results.push(await result)
    }
    const answered = results.reduce((sum, { counts }) => sum + (counts['200'] ?? 0), 0)
    const charged = databaseOf(gateway.dataDir)
      .usage()
      .filter(({ reason }) => reason === 'complete').length
    return { stretches: results, answered, charged }
  } finally {
    upstream.kill()
    generator.kill()
    await gateway.discard()
  }
}
