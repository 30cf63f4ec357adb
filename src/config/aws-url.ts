/**
 * Domains of Amazon's partitions beside the first, by the beginning of their regions.
 * https://github.com/aws/aws-sdk-js-v3/blob/main/packages/util-endpoints/src/lib/aws/partitions.json
 */
const DOMAINS: readonly (readonly [string, string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
  ['us-isof-', 'csp.hci.ic.gov'],
]

/** The address of a service of Amazon in a region. */
export function awsUrl(service: 'bedrock-runtime' | 's3', region: string): string {
  const domain = DOMAINS.find(([start]) => region.startsWith(start))?.[1] ?? 'amazonaws.com'
  return `https://${service}.${region}.${domain}`
}
