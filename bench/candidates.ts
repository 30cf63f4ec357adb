import type { Candidate } from './candidate.ts'
import { direct } from './candidates/direct.ts'
import { committing, forwarder } from './candidates/forwarder.ts'
import { haproxy } from './candidates/haproxy.ts'
import { nginx } from './candidates/nginx.ts'
import { portkey } from './candidates/portkey.ts'
import { earlier, sluice } from './candidates/sluice.ts'

/**
 * All candidates, by their names in the table. `watched` is a gateway whose log is open in consoles during
 * the measurement, `earlier` is another checkout of this gateway.
 */
export const CANDIDATES = {
  direct,
  nginx,
  haproxy,
  forwarder,
  committing,
  sluice,
  watched: sluice,
  earlier,
  portkey,
} satisfies Record<string, Candidate>

/** The name of a candidate. */
export type CandidateName = keyof typeof CANDIDATES
