import { settleSecrets } from '../store/secret-state.ts'
import type { Secrets } from '../store/secrets.ts'
import type { RowStore } from '../store/store.ts'

/** Milliseconds between two looks at the state of the secret. */
const INTERVAL_MS = 1_000

/** What following a change of the secret needs. */
interface SecretChangeServices {
  readonly store: Pick<RowStore, 'read' | 'write'>
  readonly secrets: Secrets
  /** Name of this node. */
  readonly node: string
  readonly onChange: () => void
  readonly warn: (sentence: string) => void
}

/**
 * Follows a change of the secret on a node that knows both secrets: encrypts with the new one from its beginning, and
 * accepts the old one until its end. Reports both steps to the database, whose commands wait for them. A node with
 * one secret has nothing to follow; it reports that too, because its earlier run may have known both. `docs/security.md: Change the secret`.
 */
export async function followSecretChange(services: SecretChangeServices): Promise<{ close(): void }> {
  const { store, secrets, node, onChange, warn } = services
  const report = (): Promise<void> =>
    store.write('recordNodeSecrets', { node, check: secrets.check, otherCheck: secrets.other?.check ?? null })
  await report()
  if (!secrets.other) {
    // A change may have begun since the start read the state, when this node counted as one that knows the new secret.
    settleSecrets(secrets, await store.read('secretState'))
    return { close: () => {} }
  }
  let reported = stateOf(secrets)
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let hasFailed = false
  const look = async (): Promise<void> => {
    try {
      const before = stateOf(secrets)
      settleSecrets(secrets, await store.read('secretState'))
      const present = stateOf(secrets)
      if (present !== before) onChange()
      if (present !== reported) await report()
      reported = present
      hasFailed = false
    } catch (error) {
      // The database is away, or has a third secret now; a start would say so too.
      const reason = error instanceof Error ? error.message : String(error)
      if (!hasFailed) warn(`the state of the secret cannot be read: ${reason}`)
      hasFailed = true
    }
    if (!isClosed && secrets.other) wait()
  }
  const wait = (): void => void (timer = setTimeout(() => void look(), INTERVAL_MS).unref())
  wait()
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

function stateOf({ check, other }: Secrets): string {
  return `${check} ${other?.check}`
}
