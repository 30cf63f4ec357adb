import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { demoYaml } from '../simulator/demo-config.ts'
import { startSimulator } from '../simulator/start-simulator.ts'
import { loadConfig } from './load-config.ts'
import { loadEnvironment } from './load-environment.ts'
import { run } from './start.ts'

/**
 * `sluice demo`: the gateway with simulated upstreams. Its data is deleted at the end, unless DATA_DIR is
 * set.
 */
export async function demo(): Promise<number> {
  const simulator = await startSimulator()
  const keptDir = process.env['DATA_DIR']
  const dataDir = keptDir ?? mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const config = join(dataDir, 'demo.yaml')
    rmSync(config, { force: true })
    writeFileSync(config, demoYaml(simulator), { mode: 0o600, flag: 'wx' })
    const environment = loadEnvironment({ config }, { ...process.env, DATA_DIR: dataDir })
    const loaded = environment && loadConfig(environment)
    return loaded ? await run(loaded) : 1
  } finally {
    if (keptDir === undefined) rmSync(dataDir, { recursive: true, force: true })
    await simulator.close()
  }
}
