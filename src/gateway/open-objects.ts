import { join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import type { FileLocation } from '../domain/options.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { filesNotShared } from '../store/files-not-shared.ts'
import { ObjectFolder } from '../store/object-folder.ts'
import type { ObjectPlace } from '../store/object-place.ts'

/** Minimum milliseconds between two log lines about the place. */
const LOG_INTERVAL_MS = 60_000

/** Services that the place of files needs. */
export interface ObjectServices {
  readonly environment: Pick<Environment, 'dataDir' | 'bucketKey'>
  readonly settings: () => Pick<Settings, 'options'>
  readonly warn: (fields: object, sentence: string) => void
  /** Whether other nodes of the database may have written files in folders of their own. */
  readonly hasOthers: boolean
}

/** The place of `options.files.store`, which is opened again when the option changes. */
export interface OpenObjects extends AsyncDisposable {
  readonly place: () => Promise<ObjectPlace>
}

/** Opens nothing yet. */
export function openObjects({ environment, settings, warn, hasOthers }: ObjectServices): OpenObjects {
  let opened: { readonly store: string; readonly place: Promise<ObjectPlace> } | undefined
  const report = reporting(warn)
  return {
    place() {
      const { store } = settings().options.files
      const text = JSON.stringify(store)
      if (opened?.store === text) return opened.place
      void opened?.place.then((former) => former.close()).catch(() => {})
      const place = openPlace(store, environment).then(report)
      opened = { store: text, place: hasOthers && isOfOneNode(store) ? place.then(refusingMissing) : place }
      return opened.place
    },
    async [Symbol.asyncDispose]() {
      await (await opened?.place)?.close()
    },
  }
}

/** Whether a node that has this place has it alone. */
export function isOfOneNode(store: FileLocation): boolean {
  return store.kind === 'folder' && store.path === ''
}

/** What is missing in the folder of one node may be in that of another one. */
function refusingMissing(place: ObjectPlace): ObjectPlace {
  return {
    begin: (isFirst) => place.begin(isFirst),
    hasRoom: () => place.hasRoom(),
    put: (name, bytes) => place.put(name, bytes),
    get: async (name, range) => (await place.get(name, range)) ?? Promise.reject(filesNotShared()),
    remove: (name) => place.remove(name),
    close: () => place.close(),
  }
}

async function openPlace(
  store: FileLocation,
  { dataDir, bucketKey }: ObjectServices['environment'],
): Promise<ObjectPlace> {
  if (store.kind === 'folder')
    return store.path === '' ? new ObjectFolder(join(dataDir, 'files')) : new ObjectFolder(store.path, true)
  // The configuration is refused without them.
  if (!bucketKey) throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
  // Loaded on demand, because few gateways have a bucket.
  const { ObjectBucket } = await import('../upstreams/object-bucket.ts')
  return new ObjectBucket(store, bucketKey)
}

/** Returns a function that makes failures of a place `storage_unavailable`, and logs them. */
function reporting(warn: ObjectServices['warn']): (place: ObjectPlace) => ObjectPlace {
  let loggedAt = Number.NEGATIVE_INFINITY
  const checked = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      return await work
    } catch (error) {
      if (performance.now() - loggedAt > LOG_INTERVAL_MS) {
        loggedAt = performance.now()
        warn({ err: error }, 'files cannot be read or written (options.files.store)')
      }
      const message = 'files cannot be read or written at the moment; try again'
      throw new GatewayError('storage_unavailable', message, { retryAfter: 60, cause: error })
    }
  }
  return (place) => ({
    begin: (isFirst) => checked(place.begin(isFirst)),
    hasRoom: () => checked(place.hasRoom()),
    put: (name, bytes) => checked(place.put(name, bytes)),
    get: (name, range) => checked(place.get(name, range)),
    remove: (name) => checked(place.remove(name)),
    close: () => place.close(),
  })
}
