"""Published methods that surepick's own are compared with; users find them in `surepick.policies` by name.

The package may import what `policies` may, and the parts that both share (`policies.gap`, `policies.sound`,
`policies.picking`).
"""
