import { type Config, readConfig } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { printConfigErrors } from './load-environment.ts'

/** Reads the configuration. Prints its errors on standard error, and then returns undefined. */
export function loadConfig(environment: Environment): Config | undefined {
  try {
    return readConfig(environment)
  } catch (error) {
    return printConfigErrors(error)
  }
}
