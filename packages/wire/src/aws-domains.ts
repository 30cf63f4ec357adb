/**
 * Domains of Amazon's partitions, by the beginning of their regions; the last one has all others.
 * https://github.com/aws/aws-sdk-js-v3/blob/main/packages/util-endpoints/src/lib/aws/partitions.json
 */
const DOMAINS: readonly (readonly [string, string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['', 'amazonaws.com'],
]

/** Matches the host names of Amazon's services. */
export const AWS_HOST: RegExp = new RegExp(
  String.raw`\.(?:${DOMAINS.map(([, domain]) => domain.replaceAll('.', String.raw`\.`)).join('|')})$`,
)

/** The address of a service of Amazon in a region. */
export function awsUrl(service: 'bedrock-runtime' | 's3', region: string): string {
  return `https://${service}.${region}.${DOMAINS.find(([start]) => region.startsWith(start))?.[1]}`
}
