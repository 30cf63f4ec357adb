import { GatewayError } from '../errors.ts'

/** The error if other nodes may not find what this node keeps, or may have what it does not find. */
export function filesNotShared(): GatewayError {
  return new GatewayError(
    'files_not_shared',
    'several nodes run and do not share files: the operator has to set options.files.store to a bucket, or to a folder that all nodes share',
  )
}
