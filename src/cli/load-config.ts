import process from 'node:process'
import { type Config, readConfig } from '../config/config.ts'
import { readEnvironment } from '../config/environment.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'

/** Reads environment and configuration; prints errors on standard error, and then returns undefined. */
export function loadConfig(
  options: { readonly config?: string; readonly workers?: string },
  env: NodeJS.ProcessEnv = process.env,
): Config | undefined {
  try {
    return readConfig(readEnvironment(env, options))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const diagnostic of error.diagnostics) process.stderr.write(`${formatDiagnostic(diagnostic)}\n`)
    process.stderr.write('Nothing was started. "sluice check" reads the configuration without starting.\n')
    return undefined
  }
}
