import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '../..')

/** The fields of a compose service that tests read. */
export interface Service {
  readonly build?: string
  readonly image: string
  readonly read_only?: boolean
  readonly user?: string
  readonly cap_drop?: readonly string[]
  readonly security_opt: readonly string[]
  readonly stop_grace_period?: string
  readonly ports?: readonly string[]
  readonly networks?: readonly string[]
  readonly volumes?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
}

/** A compose file. */
export interface ComposeFile {
  readonly text: string
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}

/** The text of a file at the root of the repository. */
export function rootFile(name: string): string {
  return readFileSync(join(ROOT, name), 'utf8')
}

/** A compose file of the repository; anchors and merged keys are resolved as compose resolves them. */
export function composeFile(name: string): ComposeFile {
  const text = rootFile(name)
  const { services, volumes } = parse(text, { merge: true }) as Omit<ComposeFile, 'text'>
  return { text, services, volumes }
}

/** The services that are gateways. */
export function gatewaysOf({ services }: ComposeFile): Service[] {
  return Object.values(services).filter(({ build }) => build !== undefined)
}

/**
 * The environment variables that a compose file reads, with their defaults, or with the error message where
 * they are required.
 */
export function variablesOf({
  text,
}: ComposeFile): Map<string, { kind: 'default' | 'required'; text: string }> {
  const found = [...text.matchAll(/\$\{(\w+):([-?])([^}]*)\}/g)]
  return new Map(
    found.map(([, name = '', mark, rest = '']) => [
      name,
      { kind: mark === '?' ? ('required' as const) : ('default' as const), text: rest },
    ]),
  )
}
