import process from 'node:process'
import { type Environment, readEnvironment } from '../config/environment.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'

/** Prints the errors of a refused configuration on standard error; rethrows any other error. */
export function printConfigErrors(error: unknown): undefined {
  if (!(error instanceof ConfigError)) throw error
  for (const diagnostic of error.diagnostics) process.stderr.write(`${formatDiagnostic(diagnostic)}\n`)
  process.stderr.write('Nothing was started. "sluice check" reads the configuration without starting.\n')
  return undefined
}

/** Reads the environment. Prints its errors on standard error, and then returns undefined. */
export function loadEnvironment(
  options: { readonly config?: string },
  env: NodeJS.ProcessEnv = process.env,
): Environment | undefined {
  try {
    return readEnvironment(env, options)
  } catch (error) {
    return printConfigErrors(error)
  }
}
