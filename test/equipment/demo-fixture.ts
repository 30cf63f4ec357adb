import { startSimulator } from '@sluice/simulator'
import { demoYaml } from '../../src/cli/demo-config.ts'
import { DEMO_USERS } from './demo-session.ts'
import { type RunningGateway, startGateway } from './gateway.ts'

/** A gateway in front of the demo's models, which answer without delays. */
export interface DemoFixture {
  readonly gateway: RunningGateway
  close(): Promise<void>
}

/** Starts gateway and models. */
export async function startDemoFixture(): Promise<DemoFixture> {
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  const config = `${demoYaml(simulator)}\n${DEMO_USERS}\n`
  const gateway = await startGateway({ config }).catch(async (error: unknown) => {
    await simulator.close()
    throw error
  })
  return {
    gateway,
    async close() {
      await gateway.discard()
      await simulator.close()
    },
  }
}
