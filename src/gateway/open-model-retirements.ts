import type { AnnouncedRetirement } from '../alerts/model-retirement-alerts.ts'
import type { ChangeFeed } from '../cluster/change-feed.ts'
import type { Settings } from '../domain/settings.ts'
import { hmacOf, type Secrets } from '../store/secrets.ts'
import { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { OpenedLedger } from './open-ledger.ts'
import { ModelListReader } from './read-model-lists.ts'

type ReaderServices = Omit<ConstructorParameters<typeof ModelListReader>[0], 'ends' | 'store' | 'onStored'>

/** Dates on which models are shut down, and functions that read them from the database and from upstreams. */
export interface OpenModelRetirements {
  readonly ends: ModelRetirements
  /** Reads the stored dates again, because another node may have changed them. */
  reread(): Promise<void>
  /** Starts reading the model lists of upstreams. */
  readLists(services: ReaderServices): Pick<ModelListReader, 'close'>
}

/** Loads the shutdown dates that upstreams have stated before. */
export async function openModelRetirements(
  accounts: OpenedLedger,
  secrets: Secrets,
  changes: ChangeFeed | undefined,
): Promise<OpenModelRetirements> {
  const { store } = accounts
  const ends = new ModelRetirements((baseUrl) => hmacOf(secrets, 'model list', baseUrl))
  const reread = async (): Promise<void> => ends.replaceListed(await store.read('modelRetirements'))
  const onStored = async (): Promise<void> => {
    await reread()
    changes?.notify({ of: 'settings' })
  }
  await reread()
  return {
    ends,
    reread,
    readLists: (services) => new ModelListReader({ ...services, ends, store, onStored }),
  }
}

/** The models that will be shut down, with their successors. */
export function announcedRetirements(
  ends: ModelRetirements,
  settings: Settings,
): readonly AnnouncedRetirement[] {
  return ends.of(settings).ending.map(({ model, end: { on } }) => ({
    model,
    on,
    successor: settings.models.get(model).successor ?? null,
  }))
}
