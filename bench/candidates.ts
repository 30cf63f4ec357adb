import type { Candidate } from './candidate.ts'
import { direct } from './candidates/direct.ts'
import { forwarder } from './candidates/forwarder.ts'
import { haproxy } from './candidates/haproxy.ts'
import { nginx } from './candidates/nginx.ts'
import { portkey } from './candidates/portkey.ts'
import { sluice } from './candidates/sluice.ts'

/** Everything that is measured, by the name it has in the table. */
export const CANDIDATES = { direct, nginx, haproxy, forwarder, sluice, portkey } satisfies Record<
  string,
  Candidate
>

/** The name of one of them. */
export type Name = keyof typeof CANDIDATES
