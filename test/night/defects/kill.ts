import type { Patch } from '../../fixtures/patch.ts'

/** Defects. Each process has one of them, which an environment variable names. */
export type KillDefect =
  | 'no gate one'
  | 'no gate two, whole'
  | 'no gate two, streamed'
  | 'no gate one, passed'
  | 'no gate two, passed'
  | 'no output counted'

const has = (defect: KillDefect): string => `process.env['DEFECT'] === ${JSON.stringify(defect)}`

export const KILL_DEFECTS: readonly Patch[] = [
  {
    file: 'src/call/streamed-response.ts',
    text: 'if (!opening) return',
    by: `if (!opening || ${has('no gate one')}) return`,
  },
  {
    file: 'src/call/streamed-response.ts',
    text: '!this.call.hold.isDurable',
    by: `(!this.call.hold.isDurable && !(${has('no gate one')}))`,
  },
  {
    file: 'src/call/whole-response.ts',
    text: 'const [charged] = await Promise.all([charging, keeping])',
    by: `const charged = ${has('no gate two, whole')} ? (undefined as never) : await charging`,
  },
  {
    file: 'src/call/streamed-response.ts',
    text: 'const charging = this.call.settlement.settle(',
    by: `const charging = (async (...all) => {
    if (${has('no gate two, streamed')} && lastFrame && ending !== 'client_gone') {
      await this.call.hold.whenDurable()
      this.#outgoing.release()
      this.#sendOutgoing()
      this.#sendHead()
      response.end(lastFrame(tap.usage ?? NO_USAGE))
      lastFrame = undefined
    }
    return this.call.settlement.settle(...all)
  })(`,
  },
  {
    file: 'src/call/passthrough-response.ts',
    text: 'if (hold.isDurable) return this.#send()',
    by: `if (hold.isDurable || ${has('no gate one, passed')}) return this.#send()`,
  },
  {
    file: 'src/call/passthrough-response.ts',
    text: 'await this.call.settlement.settleMeasured(',
    by: `await ((...all) => {
    const charging = this.call.settlement.settleMeasured(...all)
    return ${has('no gate two, passed')} ? undefined : charging
  })(`,
  },
  // Charges a client that leaves in the middle only for the prompt.
  {
    file: 'src/call/price-usage.ts',
    text: 'const isReportedMore = ',
    by: `const isReportedMore = ${has('no output counted')} || `,
  },
]
