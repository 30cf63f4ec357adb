import { expect, test } from 'vitest'
import { AWS_HOST, awsUrl } from './aws-domains.ts'

test.each([
  ['eu-central-1', 'amazonaws.com'],
  ['us-gov-west-1', 'amazonaws.com'],
  ['cn-northwest-1', 'amazonaws.com.cn'],
  ['eusc-de-east-1', 'amazonaws.eu'],
  ['us-iso-east-1', 'c2s.ic.gov'],
  ['us-isob-east-1', 'sc2s.sgov.gov'],
  ['eu-isoe-west-1', 'cloud.adc-e.uk'],
  ['us-isof-south-1', 'csp.hci.ic.gov'],
])('a service of Amazon has the domain of the partition of its region: %s', (region, domain) => {
  expect(awsUrl('s3', region)).toBe(`https://s3.${region}.${domain}`)
  expect(`s3.${region}.${domain}`).toMatch(AWS_HOST)
  expect(`s3.${region}.${domain}.example`).not.toMatch(AWS_HOST)
  expect(`s3-${domain}`).not.toMatch(AWS_HOST)
})
