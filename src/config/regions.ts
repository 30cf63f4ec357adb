import { nearest } from '../domain/nearest.ts'

/** Published regions of AWS, with or without Bedrock. */
const AWS: Readonly<Record<string, string>> = {
  af: 'south-1',
  ap: 'east-1 east-2 northeast-1 northeast-2 northeast-3 south-1 south-2 southeast-1 southeast-2 southeast-3 southeast-4 southeast-5 southeast-6 southeast-7',
  ca: 'central-1 west-1',
  cn: 'north-1 northwest-1',
  eu: 'central-1 central-2 north-1 south-1 south-2 west-1 west-2 west-3',
  'eusc-de': 'east-1',
  il: 'central-1',
  me: 'central-1 south-1',
  mx: 'central-1',
  sa: 'east-1',
  us: 'east-1 east-2 west-1 west-2',
  'us-gov': 'east-1 west-1',
  'us-iso': 'east-1 west-1',
  'us-isob': 'east-1 west-1',
}

/** Published regions of Google Cloud, which are locations of Vertex AI. */
const GOOGLE: Readonly<Record<string, string>> = {
  africa: 'south1',
  asia: 'east1 east2 northeast1 northeast2 northeast3 south1 south2 southeast1 southeast2 southeast3',
  australia: 'southeast1 southeast2',
  europe: 'central2 north1 north2 southwest1 west1 west2 west3 west4 west6 west8 west9 west10 west12',
  me: 'central1 central2 west1',
  northamerica: 'northeast1 northeast2 south1',
  southamerica: 'east1 west1',
  us: 'central1 east1 east4 east5 east7 south1 west1 west2 west3 west4',
}

const REGIONS = namesOf(AWS)
const LOCATIONS = new Set(['global', 'us', 'eu', ...namesOf(GOOGLE)])

/** Describes the error of a name that is not a region of AWS; undefined if it is one. */
export function regionError(region: string): string | undefined {
  return errorOf(region, REGIONS, 'the name of a region')
}

/** Describes the error of a name that is not a location of Vertex AI; undefined if it is one. */
export function locationError(location: string): string | undefined {
  return errorOf(location, LOCATIONS, 'a location')
}

// A region that is newer than this table can be used by its address.
function errorOf(name: string, known: ReadonlySet<string>, expected: string): string | undefined {
  if (known.has(name)) return undefined
  const near = nearest(name, known)
  return `expected ${expected}${near === undefined ? '' : `, such as ${near}`}, found "${name}"; one that is newer needs base_url`
}

function namesOf(areas: Readonly<Record<string, string>>): ReadonlySet<string> {
  return new Set(
    Object.entries(areas).flatMap(([area, places]) => places.split(' ').map((place) => `${area}-${place}`)),
  )
}
